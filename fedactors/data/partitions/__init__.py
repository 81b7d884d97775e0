"""Who holds which samples: partitions over clients, their sizes, and splits between clients and a central learner."""
