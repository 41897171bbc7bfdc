"""Python imports this at start in processes that have this folder on their path: what the environment names is armed.

So the services under test are the very programs that run elsewhere, started by their own names, and know of nothing.
"""

import os

if os.environ.get("CHAOS_FAILPOINTS"):
    from chaos import failpoints

    failpoints.arm()
if os.environ.get("CHAOS_SABOTAGE"):
    from chaos import sabotage

    sabotage.arm()
