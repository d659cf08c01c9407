"""Attacks that read words and documents off what the server sees. Each returns its share of right answers.

Half of the candidates are in the documents of party `north`, and the attacker says which half: 0.5 is guessing. The
other party's documents are as many again. The attacks are the same for all modes; what differs is what is sent.
"""

import numpy as np

from helpers.server_view import replies, view

CANDIDATES = 100
EPSILON = 4.0  # of a word in mode `sound`
DOCUMENT_EPSILON = 3.0  # in mode `doc`
COMMON = tuple(f"common{i}" for i in range(150))
BETA = 0.01
FTM = {"name": "ftm", "topics": 4, "rounds": 2, "sweeps": 10, "beta": BETA, "evaluate": False}
FEDLDA = {"name": "fedlda", "topics": 4, "rounds": 40, "evaluate": False, "max_words": 40}
DOC = {"name": "private_topics", "topics": 4, "epsilon": DOCUMENT_EPSILON, "adapt": False}


def common_documents(rng, number, length=35):
    """Documents over common words."""
    return [list(rng.choice(COMMON, length)) for _ in range(number)]


def lone_words(seed):
    """Texts by party, the words of the list, and which candidates each occur once in one document of `north`."""
    rng = np.random.default_rng(seed)
    names = [f"rare{i}" for i in range(CANDIDATES)]
    there = rng.permutation(np.arange(CANDIDATES) < CANDIDATES // 2)
    north, south = common_documents(rng, 60), common_documents(rng, 60)
    for i in np.flatnonzero(there):
        north[rng.integers(len(north))].append(names[i])
    return joined(north, south), [*names, *COMMON], there


def joined(north, south):
    """Texts by party."""
    return {"north": [" ".join(own) for own in north], "south": [" ".join(own) for own in south]}


def upper_half(scores, there, rng):
    """Name the half with the larger scores; ties are broken by chance. Return the share of right answers."""
    order = np.lexsort((rng.random(len(scores)), scores))
    said = np.zeros(len(scores), bool)
    said[order[len(scores) // 2 :]] = True
    return float((said == there).mean())


def inverted(topic_word, beta):
    """Undo the normalisation of topics (K, V): a row's numbers are (count + beta) times a unit, their smallest gap."""
    found = np.zeros(topic_word.shape)
    for counts, row in zip(found, topic_word.astype(np.float64), strict=True):
        gaps = np.diff(np.sort(row))
        gaps = gaps[gaps > 1e-5 * row.max()]  # smaller ones are of float32
        if len(gaps):  # else a topic without tokens
            counts[:] = row / gaps.min() - beta
    return found


def counted(mode, model):
    """Estimate how often each word occurs, from a party's topics [V]: modes but `paper` send the topics' sizes, too."""
    if mode == "paper":
        return inverted(model.topic_word, BETA).sum(axis=0)
    return (model.topic_word * model.sizes[:, None]).sum(axis=0)


def own_model(mode, texts, names, seed):
    """What party `north` sends in the first round of FTM."""
    noise = {} if mode == "clear" else {"epsilon": EPSILON}
    seen, _ = view({**FTM, "mode": mode, **noise}, texts, names, seed)
    return replies(seen, "train_local")[0]["north"]


def normalisation(mode, seed=0):
    """Count words from a party's normalised topics (FTM): how many of 100, of 1 to 4 tokens each, are right.

    Guessing is right about a quarter of them.
    """
    rng = np.random.default_rng([seed, 1])
    names, counts = [f"rare{i}" for i in range(CANDIDATES)], rng.permutation(np.arange(CANDIDATES) % 4 + 1)
    north, south = common_documents(rng, 60), common_documents(rng, 60)
    for name, n in zip(names, counts, strict=True):
        for _ in range(n):
            north[rng.integers(len(north))].append(name)
    model = own_model(mode, joined(north, south), [*names, *COMMON], seed)
    found = counted(mode, model)[:CANDIDATES]
    if mode != "paper":  # under noise the order tells more than the numbers: a quarter of the words each
        order = np.lexsort((rng.random(CANDIDATES), found))
        found[order] = 1 + np.arange(CANDIDATES) // (CANDIDATES // 4)
    return float((np.rint(found) == counts).mean())


def lone(mode, seed=0):
    """Find the words that one document alone has: in a party's own topics, with `doc` in the released ones."""
    texts, names, there = lone_words(seed)
    rng = np.random.default_rng([seed, 2])
    if mode == "doc":
        _, topics = view(DOC, texts, names, seed)
        return upper_half(topics.max(axis=0)[:CANDIDATES], there, rng)
    return upper_half(counted(mode, own_model(mode, texts, names, seed))[:CANDIDATES], there, rng)


def averaged(mode, seed=0):
    """Add up what users report in 40 rounds (FedLDA): in mode `paper` they draw it again in each."""
    texts, names, there = lone_words(seed)
    how = {"mode": "paper", "mechanism": "rrp", "epsilon": 7.5, "paper": {"bookkeeping": "paper"}}
    if mode == "sound":
        how = {"mode": "sound", "epsilon": EPSILON}
    seen, _ = view({**FEDLDA, **how}, texts, names, seed)
    found = replies(seen, "local_sampling" if mode == "paper" else "count_reports")
    named = sum(np.abs(reply.moved if mode == "paper" else reply.counts).sum(axis=0, dtype=float) for reply in found)
    return upper_half(named[:CANDIDATES], there, np.random.default_rng([seed, 3]))


def planted(mode, seed=0):
    """Plant documents of two made-up words each, or not, and look for these words where `lone` does."""
    rng = np.random.default_rng([seed, 4])
    names = [f"rare{i}" for i in range(2 * CANDIDATES)]
    there = rng.permutation(np.arange(CANDIDATES) < CANDIDATES // 2)
    north, south = common_documents(rng, 150), common_documents(rng, 150)
    north += [[names[2 * i], names[2 * i + 1]] * 15 for i in np.flatnonzero(there)]
    texts, words = joined(north, south), [*names, *COMMON]
    if mode == "doc":
        _, topics = view(DOC, texts, words, seed)
        scores = topics[:, : 2 * CANDIDATES].reshape(len(topics), CANDIDATES, 2).sum(axis=2).max(axis=0)
    else:
        scores = counted(mode, own_model(mode, texts, words, seed))[: 2 * CANDIDATES].reshape(-1, 2).sum(axis=1)
    return upper_half(scores, there, rng)
