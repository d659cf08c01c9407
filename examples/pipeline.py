"""LDA as a step of scikit-learn's pipelines; a grid search chooses the number of topics and the tokenisation."""

from pathlib import Path

import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import tertulia as tt

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
texts, wards = notes["text"].to_list(), notes["ward"].to_list()

pipeline = make_pipeline(tt.LDA(sweeps=50), LogisticRegression())
choices = {"lda__topics": [2, 5], "lda__text": [None, tt.TextOptions(ngrams=2)]}
search = GridSearchCV(pipeline, choices, cv=3).fit(texts, wards)
print(f"{search.best_score_:.0%} of wards are right, with {search.best_params_}")

shares = search.best_estimator_[0].set_output(transform="pandas").transform(texts[:3])
print(shares.round(2))
