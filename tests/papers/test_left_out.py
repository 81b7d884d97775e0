"""An experiment played without some of its labels: claims that look at them are gone, the others are judged."""

from contextlib import suppress
from dataclasses import replace

import pytest

from fedactors.papers.campaign.campaign_file import ListedExperiment, _entry, distinct
from fedactors.papers.catalogue import FULL
from fedactors.papers.verdicts import ClaimVerdict
from tests.papers.test_every_claim import SOME, table_of

NEEDED = ("T", "tau")  # axes of which claims compare labels by name, such as |T| = 3 with 8


def without(name, axis, *labels):
    """Return an experiment at full size without some labels."""
    return _entry(ListedExperiment(name=name, without={axis: list(labels)}), False, "papers.yaml").experiment


def judged(experiment, runs=SOME):
    """Return the claims about made-up figures, all of models that have learnt."""
    return experiment.judged(made_up(experiment, runs))


def made_up(experiment, runs=SOME):
    return replace(experiment, floors=()).table(table_of(experiment, runs).rows)


def axes(name):
    return {(axis, label) for grid in FULL[name].grids for axis, values in grid.items() for label in values}


@pytest.mark.parametrize("name", distinct(FULL))
def test_whatever_label_is_left_out_the_other_claims_are_judged(name):
    for axis, label in sorted(axes(name), key=str):
        experiment = without(name, axis, label)
        if axis in NEEDED or not any(experiment.cells()):
            continue
        claims = judged(experiment)
        experiment.beside(made_up(experiment))
        assert ClaimVerdict.NOT_LEARNT not in {claim.verdict for claim in claims}, (axis, label)


def test_claims_about_others_are_the_same():
    whole = [claim.text for claim in judged(FULL["fsl-fig5-cifar"])]
    found = [claim.text for claim in judged(without("fsl-fig5-cifar", "algorithm", "FSLsyn"))]
    assert found == [text for text in whole if "FSLsyn" not in text]
    assert len(found) == 7


def test_without_iid_clients_nobody_is_said_to_be_iid():
    for name, labels in (("fsl-fig1-cifar", 10), ("fsl-fig6-emnist", 45), ("fsl-fig9-cifar", 10)):
        whole = [claim.text for claim in judged(FULL[name])]
        found = [claim.text for claim in judged(without(name, "C", labels))]
        assert [text for text in found if "IID" in text or f"C = {labels}" in text] == []
        assert set(found) <= set(whole)


@pytest.mark.parametrize("name", distinct(FULL))
def test_of_one_label_alone_there_are_claims_or_it_is_said_what_they_need(name):
    """A KeyError names a cell that is left out; a campaign says so, and goes on."""
    for axis in sorted({axis for axis, _ in axes(name)}):
        labels = [label for at, label in sorted(axes(name), key=str) if at == axis]
        for label in labels:
            experiment = without(name, axis, *(other for other in labels if other != label))
            with suppress(KeyError):
                texts = [claim.text for claim in judged(experiment)]
                assert len(set(texts)) == len(texts)
