"""The crawlers Threadmill is measured against, each set up as its own documentation says."""
