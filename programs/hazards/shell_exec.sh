#!/bin/sh
# Stands for the wrapper scripts that start most large programs: prepares something, then becomes the program.
HAZARD_WRAPPED=1
export HAZARD_WRAPPED
exec "$1" real
