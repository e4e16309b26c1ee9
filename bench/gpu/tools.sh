# Where a machine has what bench/gpu/bundle does not bring: cuBLAS, and NVIDIA's tools. Included by bench/gpu/run.
# shellcheck shell=bash

cublas=libcublas.so.13

# The folder of cuBLAS, unless the system's own search finds it: with a CUDA toolkit, or among Python's packages
# (PyTorch brings one along).
cublas_folder() {
  local folders=() folder found
  if command -v python3 >/dev/null; then
    while IFS= read -r folder; do
      [ ! -d "$folder" ] || folders+=("$folder")
    done < <(timeout 20 python3 -c \
      'import sys; print(*[path for path in sys.path if path.endswith("-packages")], sep="\n")')
  fi
  for folder in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-13* /usr/lib/python3 /usr/local/lib /opt; do
    [ -z "$folder" ] || [ ! -d "$folder" ] || folders+=("$folder")
  done
  for folder in "${folders[@]}"; do
    # The link may be one itself, as /usr/local/cuda is.
    found=$(timeout 10 find "$folder/" -name "$cublas" -print -quit 2>/dev/null)
    if [ -n "$found" ]; then
      dirname "$found"
      return
    fi
  done
}

# Puts cuBLAS where our programs find it, and says where it is, or that it is nowhere.
find_cublas() {
  local folder
  # Without -q, which would end ldconfig by a signal, and that counts as a failure here.
  if ldconfig -p 2>/dev/null | grep -F "$cublas" >/dev/null; then
    echo 'of the system'
    return
  fi
  folder=$(cublas_folder)
  if [ -z "$folder" ]; then
    echo "there is no $cublas: what needs it is left out"
    return 1
  fi
  echo "$folder"
}

# The path of one of NVIDIA's tools; nothing when it is not there.
tool_path() { # NAME
  local path
  for path in "$(command -v "$1")" "${CUDA_HOME:-/usr/local/cuda}/bin/$1" /usr/local/cuda*/bin/"$1" \
    /opt/nvidia/*/"$1" /opt/nvidia/*/*/"$1" /opt/nvidia/*/*/bin/"$1"; do
    if [ -f "$path" ] && [ -x "$path" ]; then
      echo "$path"
      return
    fi
  done
}
