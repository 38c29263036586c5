! SPDX-License-Identifier: BSD-3-Clause
! Run over a libmpi_abi that does nothing but print its calls (stub.py): what
! the Fortran library asks of C.
program over_stub
  use mpi_f08
  implicit none
  integer :: a(4, 4), b(8), n
  integer, asynchronous :: c(4)
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request
  type(MPI_Datatype) :: types(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, n)
  comm%MPI_VAL = 4097
  call MPI_Send(a, 16, MPI_INTEGER, 1, 2, comm)
  call MPI_Send(a(1, :), 4, MPI_INTEGER, 1, 2, comm)
  call MPI_Recv(b(::2), 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &
    MPI_STATUS_IGNORE)
  call MPI_Isend(c, 4_MPI_COUNT_KIND, MPI_INTEGER, 1, 2, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Allreduce(MPI_IN_PLACE, b, 8, MPI_INTEGER, MPI_SUM, comm)
  types = [MPI_INTEGER, MPI_REAL]
  call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, &
    8_MPI_ADDRESS_KIND], types, types(1))
  call MPI_Comm_set_name(comm, 'name   ')
  call PMPI_Barrier(comm)
  call MPI_Finalize()
end program
