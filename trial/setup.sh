set -u
mkdir -p site; python3 -m pip install -q --no-index --no-deps --target site out/wheels/*.whl 2>&1 | grep -v WARNING | head -5
export PYTHONPATH=$PWD/out/trial:site PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false PCCES_CACHE=jaxcache OMP_NUM_THREADS=1
export CUDA_MPS_PIPE_DIRECTORY=mps CUDA_MPS_LOG_DIRECTORY=mpslog; mkdir -p mps mpslog
nvidia-cuda-mps-control -d
