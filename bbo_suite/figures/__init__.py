"""Figures of a study: each answers one question, and returns the data that it shows."""

from .study_figure import FIGURES, FORMATS, MODELS, StudyFigure, left_out, save, write

__all__ = ["FIGURES", "FORMATS", "MODELS", "StudyFigure", "left_out", "save", "write"]
