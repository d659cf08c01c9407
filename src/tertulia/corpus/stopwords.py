"""Stop words of many languages: the lists of stopwords-iso, and for English our own.

The library's English list has 1,298 words, among them computer, system, world and money: whole topics would vanish.
Ours holds function words only: pronouns, auxiliaries, prepositions, conjunctions, and adverbs of degree and time.
"""

from __future__ import annotations

from tertulia.errors import InputError

ENGLISH = """
a about above across actually after again against ago all almost alone along already also although always am among an
and another any anybody anyhow anyone anything anyway anywhere are aren't around as aside at away be became because
become becomes been before beforehand behind being below beside besides between beyond both but by can can't cannot
could couldn't did didn't do does doesn't doing don't done down due during each either else elsewhere enough etc even
ever every everybody everyone everything everywhere except few for from further furthermore get gets getting give
given gives go goes going gone got had hadn't has hasn't have haven't having he he'd he'll he's hence her here here's
hers herself him himself his how how's however i i'd i'll i'm i've if in indeed instead into is isn't it it'd it'll
it's its itself just last least less let let's like likely made mainly make makes many may maybe me meanwhile might
mine more moreover most mostly much must mustn't my myself namely near nearly need neither never nevertheless next no
nobody none nonetheless nor not nothing now nowhere of off often oh ok okay on once one one's ones only onto or other
others otherwise ought our ours ourselves out over own per perhaps put quite rather re really regarding s said same
say says see seem seemed seems several shall shan't she she'd she'll she's should shouldn't since so some somebody
somehow someone something sometimes somewhat somewhere still such t take than that that's the their theirs them
themselves then there there's thereby therefore these they they'd they'll they're they've thing things this those
though through throughout thus to together too toward towards two under unless until up upon us use used uses using
usually various very via was wasn't way we we'd we'll we're we've well went were weren't what what's whatever when
when's whenever where where's whereas wherever whether which while who who's whoever whole whom whose why why's will
with within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
"""


def stop_list(language: str) -> tuple[str, ...]:
    """Return the stop words of a language, by its ISO 639-1 code."""
    if language == "en":
        return tuple(ENGLISH.split())
    import stopwordsiso

    if not stopwordsiso.has_lang(language):
        known = ", ".join(sorted(stopwordsiso.langs()))
        raise InputError(
            f"no stop words are known for language '{language}'. Choose one of {known}; "
            "or set stop_words to 'none' or to your own list"
        )
    return tuple(stopwordsiso.stopwords(language))
