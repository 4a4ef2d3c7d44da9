"""``python -m ccmac``: the console command where scripts are not on the path."""

from ccmac.cli.main import run

if __name__ == "__main__":
    run()
