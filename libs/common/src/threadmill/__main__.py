"""`python -m threadmill`: the operator's command line."""

from threadmill.ops.app import main

if __name__ == "__main__":
    main()
