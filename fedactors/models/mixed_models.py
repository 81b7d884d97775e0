"""The models of the mixed federated learning paper (Augenstein et al., 2022), by the names that a scenario uses.

Each fits itself to the data, as those in `models` do.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from fedactors.errors import DataError
from fedactors.models.layers import Flatten, Model, Relu, Shape, dense, stack
from fedactors.models.sequence_layers import Bag, Embedding, gru, place_dense
from fedactors.options import Options


class SmileFc(Options):
    """The smile classifier: one hidden layer of 64 with ReLU and one output; 150,657 parameters on 28 x 28 x 3."""

    name: Literal["smile_fc"] = "smile_fc"
    hidden: PositiveInt = 64

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model. Raises DataError if there are more than two labels."""
        if classes != 2:
            raise DataError(f'model "{self.name}": found {classes} labels, accepted: 2 (see task.split.positive)')
        return stack(self.name, input_shape, Flatten(), dense(self.hidden), Relu(), dense(1), loss="binary")


class CharGru(Options):
    """Next-character model: embedding, GRU, dense; 3,938,304 + 1,281 V parameters for V characters."""

    name: Literal["char_gru"] = "char_gru"
    embedding: PositiveInt = 256
    units: PositiveInt = 1024

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for texts of `input_shape`, (places,). Raises DataError if they are none."""
        layers = Embedding(classes, self.embedding), gru(self.units), place_dense(classes)
        return stack(self.name, input_shape, *layers)


class DualEncoder(Options):
    """Movie recommender: mean of the embeddings of movies seen, a dense layer, and cosines with all embeddings.

    Both towers share one table; 63,504 parameters for 3,952 movies. Trained by `hinge`; see `losses`.
    """

    name: Literal["dual_encoder"] = "dual_encoder"
    width: PositiveInt = 16
    """Length of an embedding (d)."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for lists of movies, (places,). Raises DataError if they are none."""
        return stack(self.name, input_shape, Bag(classes, self.width), dense(self.width), loss="hinge")
