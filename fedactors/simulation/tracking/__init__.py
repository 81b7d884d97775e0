"""Metrics that are also logged elsewhere: TensorBoard, MLflow, Weights & Biases, each an extra of the package.

What a tracker does changes no result, and a tracker that fails stops no run.
"""
