! SPDX-License-Identifier: BSD-3-Clause
! An error that Fortran's library finds ends the job with its own sentence.
program fatal
  use mpi_f08
  implicit none
  integer, asynchronous :: a(8)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Psend_init(a(::2), 1, 4_MPI_COUNT_KIND, MPI_INTEGER, 0, 0, &
    MPI_COMM_WORLD, MPI_INFO_NULL, request)
  call MPI_Finalize()
end program
