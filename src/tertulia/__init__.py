"""Tertulia: federated topic modelling. One topic model from documents that never leave their owners.

>>> import tertulia as tt
>>> model = tt.FTM(topics=50, rounds=5).fit({"north": texts, "south": more_texts})  # doctest: +SKIP
"""

from tertulia._lazy import public_names, register_views

__version__ = "0.2.0"  # the one place that says it
__all__, __getattr__, __dir__ = public_names(__name__, __file__)
register_views(
    plots="tertulia.view.plots:Plots",  # of `Topics.plot`
    card="tertulia.view.card:card",  # of `Topics.card`
    explorer="tertulia.view.pages.explorer:write_explorer",  # of `Topics.explore`
    comparison_plots="tertulia.view.plots.comparison:Figures",  # of `Comparison.plot`
    topic_numbers_plot="tertulia.view.plots.topic_numbers:draw_topic_numbers",  # of `TopicNumbers.plot`
)
