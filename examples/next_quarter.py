"""Continue the model of the last quarter: topics that stay the same keep their ids, new ones get new ids."""

from pathlib import Path

import polars as pl

import tertulia as tt

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
notes = notes.filter((pl.col("ward") != "maternity") | (pl.col("date") >= "2026"))  # a ward that opened in January


def hospitals(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Split a table by hospital."""
    return {str(name): own for (name,), own in table.group_by("hospital", maintain_order=True)}


method = tt.Consensus(topics=4)
autumn = method.fit(hospitals(notes.filter(pl.col("date") < "2026")))
print(autumn)

winter = tt.Consensus(topics=5).fit(hospitals(notes), start_from=autumn)
print(winter.topics_table(6))
for topic in winter.provenance["drift"]:
    print(topic["topic"], topic["state"], *topic.get("came", ())[:5])
