"""The sentence that answers a comparison, worked out by hand."""

from fedactors.study.answer import best_variant
from fedactors.study.run_figures import MEASURES

ACCURACY = MEASURES["accuracy"]


def said(values, baseline="A", rises=True, measure=ACCURACY):
    named = {name: dict(enumerate(seeds)) for name, seeds in values.items()}
    return best_variant(named, baseline, measure, rises, 0.95)


def test_best_variant_difference_interval_and_pairs_are_told():
    """B - A: .10, .12, .14: mean .12, s = .02, t_{2, .975} = 4.303: half .0497."""
    assert said({"A": [0.7, 0.6, 0.8], "B": [0.8, 0.72, 0.94]}) == (
        "B has the highest accuracy, 0.820. It is better than A by 0.120 (95% interval 0.070 to 0.170, 3 pairs)."
    )


def test_a_difference_whose_interval_holds_0_is_too_close_to_tell():
    """B - A: -.1 and .3: mean .1, s = .283, t_{1, .975} = 12.706: half 2.541."""
    text = said({"A": [0.5, 0.5], "B": [0.4, 0.8]})
    assert text.endswith(
        "Against A it is too close to tell which is better: +0.100 (95% interval -2.441 to +2.641, 2 pairs)."
    )


def test_the_best_of_three_is_compared_with_the_baseline_and_the_second():
    text = said({"A": [0.1, 0.1], "B": [0.5, 0.5], "C": [0.4, 0.4]})
    assert "It is better than A by 0.400" in text
    assert "It is better than C by 0.100" in text
    assert text.endswith("; of many variants one is better by luck now and then.")


def test_a_baseline_that_is_best_is_compared_with_the_second():
    assert said({"A": [0.9, 0.9], "B": [0.5, 0.5]}).startswith("A has the highest accuracy, 0.900. It is better than B")


def test_lower_losses_are_better():
    text = said({"A": [2.0, 2.0], "B": [1.0, 1.0]}, rises=False, measure=MEASURES["loss"])
    assert text.startswith("B has the lowest loss, 1.000. It is better than A by 1.000")


def test_pairs_are_those_of_both():
    assert "+0.200 in one pair of runs, which tells no interval." in said({"A": [0.5, None], "B": [0.7, 0.9]})
    assert "no pairs of runs" in said({"A": [0.5, None], "B": [None, 0.9]})


def test_variants_that_are_equal_are_called_so():
    assert "It is equal to B (2 pairs)" in said({"A": [0.5, 0.6], "B": [0.5, 0.6]})


def test_without_figures_there_is_no_answer():
    assert said({"A": [None], "B": [None]}) == "No variant has a figure of accuracy."
    assert said({"A": [0.5], "B": [None]}) == "A has the highest accuracy, 0.500; there is nothing to compare it with."


def test_a_variant_with_figures_in_more_seeds_comes_first():
    """A reached .95 where B reached .96, and none where B reached .8: A's mean leaves out the seeds that were hard."""
    text = said({"A": [0.95, None, None], "B": [0.96, 0.8, 0.8]})
    assert text.startswith("B has the highest accuracy of those with figures in the most seeds, 0.853. Against A (1 of")
    text = said({"A": [0.95, None, None], "B": [0.9, 0.5, None]})
    assert "seeds, 0.700 (2 of 3 seeds). Against A (1 of 3 seeds): -0.050 in one pair of runs" in text
