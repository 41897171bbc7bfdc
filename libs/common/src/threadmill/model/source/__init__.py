"""Sources: sites are configured, not coded. docs/writing-a-source.md is the manual."""

from threadmill.model.source.configured import configured_sources, lanes_of
from threadmill.model.source.field import Condition, Field
from threadmill.model.source.loading import load_source
from threadmill.model.source.paging import Paging
from threadmill.model.source.resume import Resume
from threadmill.model.source.source import Source, host_of
from threadmill.model.source.stage import StageRules, Submit

__all__ = [
    "Condition",
    "Field",
    "Paging",
    "Resume",
    "Source",
    "StageRules",
    "Submit",
    "configured_sources",
    "host_of",
    "lanes_of",
    "load_source",
]
