! SPDX-License-Identifier: BSD-3-Clause
! Takes the compiler as long as it takes to read the module.
program use_mpi_f08
  use mpi_f08
  implicit none
  call MPI_Init()
  call MPI_Finalize()
end program
