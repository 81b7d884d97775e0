"""Ruan et al., Towards Flexible Device Participation in Federated Learning: tables, figures and bounds."""
