"""What actors note of their work takes little memory, however long a run is."""

from fedactors.fleet.profiling import Span, Spans, noted


def test_of_too_many_spans_the_older_half_is_forgotten():
    spans = Spans(most=10)
    for k in range(13):
        spans.note("learn" if k % 2 else "fold", float(k), k + 0.5)
    assert spans.take() == [Span("learn" if k % 2 else "fold", float(k), k + 0.5) for k in range(5, 13)]
    assert spans.take() == []


def test_work_is_noted_even_if_it_raises():
    class Worker:
        spans = Spans()

    try:
        with noted(Worker, "learn"):
            raise ValueError
    except ValueError:
        (span,) = Worker.spans.take()
    assert span.what == "learn"
    assert span.began <= span.ended
