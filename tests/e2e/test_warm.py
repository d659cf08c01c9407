"""`tertulia warm`: everything is compiled ahead, once."""

import json

import pytest

from tertulia.cli import warm
from tertulia.cli.outputs import OUTPUTS


def test_the_estimate_is_of_what_is_left():
    assert warm.estimate(12, 41, 31.4) == "kernel 12 of 41, about 30 s left"
    assert warm.estimate(41, 41, 0.0) == "kernel 41 of 41, about 1 s left"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_second_time_nothing_is_compiled(tertulia):
    assert tertulia("warm")[0] == 0
    code, out, err = tertulia("warm", "--json")
    facts = json.loads(out)
    OUTPUTS["warm"].model_validate(facts)
    assert (code, facts["compiled"]) == (0, 0)
    assert facts["stored"] > 0.95 * facts["kernels"]
    assert "kernel " not in err
