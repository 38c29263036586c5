! SPDX-License-Identifier: BSD-3-Clause
! Handles, statuses, sentinels, attributes and logicals between Fortran and C.
program with_c
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  interface
    function check_handle(comm) bind(C) result(wrong)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: wrong
    end function
    function check_ignore(status, statuses) bind(C) result(wrong)
      import :: c_int, MPI_Status
      type(MPI_Status) :: status, statuses(*)
      integer(c_int) :: wrong
    end function
    function fill_status(status) bind(C) result(wrong)
      import :: c_int, MPI_Status
      type(MPI_Status) :: status
      integer(c_int) :: wrong
    end function
    function check_attribute(comm, keyval, value) bind(C) result(wrong)
      import :: c_int, MPI_ADDRESS_KIND
      integer(c_int), value :: comm, keyval
      integer(kind=MPI_ADDRESS_KIND), value :: value
      integer(c_int) :: wrong
    end function
    function set_attribute(comm, keyval) bind(C) result(address)
      import :: c_int, MPI_ADDRESS_KIND
      integer(c_int), value :: comm, keyval
      integer(kind=MPI_ADDRESS_KIND) :: address
    end function
    function check_booleans() bind(C) result(wrong)
      import :: c_int
      integer(c_int) :: wrong
    end function
  end interface
  integer :: errors, keyval, rank
  integer(kind=MPI_ADDRESS_KIND) :: address, value
  logical :: flag
  logical(1) :: one
  logical(8) :: eight
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  errors = check_handle(comm%MPI_VAL)
  errors = errors + check_handle(MPI_COMM_WORLD%MPI_VAL)
  errors = errors + check_ignore(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE)
  errors = errors + fill_status(status)
  if (status%MPI_SOURCE /= 3 .or. status%MPI_TAG /= 4) errors = errors + 1
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &
    keyval, 0_MPI_ADDRESS_KIND)
  value = 77
  call MPI_Comm_set_attr(comm, keyval, value)
  errors = errors + check_attribute(comm%MPI_VAL, keyval, value)
  address = set_attribute(comm%MPI_VAL, keyval)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  if (.not. flag .or. value /= address) errors = errors + 1
  errors = errors + check_booleans()
  one = rank == 0
  call MPI_Allreduce(MPI_IN_PLACE, one, 1, MPI_LOGICAL1, MPI_LOR, &
    MPI_COMM_WORLD)
  eight = rank == 0
  call MPI_Allreduce(MPI_IN_PLACE, eight, 1, MPI_LOGICAL8, MPI_LXOR, &
    MPI_COMM_WORLD)
  if (.not. one .or. .not. eight) errors = errors + 1
  call MPI_Comm_free(comm)
  call MPI_Comm_free_keyval(keyval)
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (errors /= 0) stop 1
end program
