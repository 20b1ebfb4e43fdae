# SPDX-License-Identifier: Apache-2.0
"""What lossgate needs of Python: the worker, which asks a loss that a user brings."""

__version__ = "0.1.0"
