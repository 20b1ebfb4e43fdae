# SPDX-License-Identifier: Apache-2.0
# Sourced in their folder by tests whose commands start an interpreter each, which imports torch for seconds: `python`
# is from here on one of which every start is a fork of one that has (ci/warm_python.py). It ends with the test.
warm=$$-$RANDOM
exec {kept}> >(OMP_NUM_THREADS=1 exec "$python" "$source/ci/warm_python.py" serve "$warm" >warm.log 2>&1)
"$python" -IS "$source/ci/warm_python.py" program "$warm" >python
chmod +x python
python=$PWD/python
