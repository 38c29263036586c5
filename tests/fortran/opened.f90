! SPDX-License-Identifier: BSD-3-Clause
! A library that programs open while they run (opened.c).
function reduce_in_place() bind(C) result(answer)
  use, intrinsic :: iso_c_binding, only: c_int
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer(c_int) :: answer
  integer :: value, ierror
  value = 3
  call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_SELF, ierror)
  answer = merge(1, 0, value == 3)
end function
