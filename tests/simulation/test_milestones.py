"""What it took to get to an accuracy, by hand."""

from fedactors.simulation.record.milestones import milestones


def test_small_amounts_of_many_rounds_add_up():
    """1,000 rounds of 0.4 microjoules and 0.1 g are 0.4 mJ and 100 g; three bytes each are 3,000, a whole number."""
    rows = [{"round": n + 1, "joules": 4e-7, "co2_grams": 0.1, "bytes_up": 3, "accuracy": 0.1} for n in range(1000)]
    rows[499]["accuracy"] = 0.31
    rows[999]["accuracy"] = 0.4
    first, second = milestones(rows)
    assert first == {"accuracy": 0.3, "round": 500, "joules": 2e-4, "co2_grams": 50.0, "bytes_up": 1500}
    assert second == {"accuracy": 0.4, "round": 1000, "joules": 4e-4, "co2_grams": 100.0, "bytes_up": 3000}
    assert isinstance(second["bytes_up"], int)
