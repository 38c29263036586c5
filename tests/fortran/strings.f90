! SPDX-License-Identifier: BSD-3-Clause
! Strings with and without blanks at the end, of any length; logicals.
program strings
  use mpi_f08
  implicit none
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=7) :: short
  character(len=300) :: long
  character(len=40) :: value
  integer :: n, errors, major, minor
  logical :: flag
  type(MPI_Info) :: info
  type(MPI_Comm) :: grid
  logical :: periods(2), got(2)
  integer :: dims(2), coords(2)
  errors = 0
  call MPI_Init()
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'a name with   blanks    ')
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n)
  call check(n == 20 .and. name == 'a name with   blanks', 'name')
  call MPI_Get_processor_name(host, n)
  call check(n > 0 .and. len_trim(host) == n, 'processor name')
  call MPI_Get_library_version(version, n)
  call check(index(version, 'CHEMPI') == 1 .and. n >= len_trim(version), &
    'library version')
  call MPI_Get_version(major, minor)
  call check(major == MPI_VERSION .and. minor == MPI_SUBVERSION, 'version')
  call MPI_Error_string(MPI_ERR_TAG, text, n)
  call check(len_trim(text) > 0 .and. n >= len_trim(text), 'error string')

  long = 'x'
  long(300:300) = 'y'
  call MPI_Info_create(info)
  call MPI_Info_set(info, '  key ', '   a value  ')
  call MPI_Info_set(info, 'long', long)
  call MPI_Info_set(info, 'empty', ' ')
  call MPI_Info_get(info, 'key', len(value), value, flag)
  call check(flag .and. value == 'a value', 'info')
  n = len(short)
  call MPI_Info_get_string(info, 'key', n, short, flag)
  call check(flag .and. n == 7 .and. short == 'a value', 'info string')
  n = 3
  short = 'zzzzzzz'
  call MPI_Info_get_string(info, 'key', n, short(1:3), flag)
  call check(flag .and. n == 7 .and. short == 'a vzzzz', 'cut off')
  n = 0
  call MPI_Info_get_string(info, 'key', n, short, flag)
  call check(flag .and. n == 7 .and. short == 'a vzzzz', 'length only')
  call MPI_Info_get_valuelen(info, 'long', n, flag)
  call check(flag .and. n == 300, 'long value')
  call MPI_Info_get(info, 'missing', 5, value, flag)
  call check(.not. flag, 'missing')
  call MPI_Info_get_nkeys(info, n)
  call check(n == 3, 'keys')
  call MPI_Info_get_nthkey(info, 0, name)
  call check(name == 'key', 'first key')
  call MPI_Info_free(info)

  periods = [.true., .false.]
  dims = 0
  call MPI_Dims_create(1, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid)
  call MPI_Cart_get(grid, 2, dims, got, coords)
  call check(all(got .eqv. periods) .and. all(dims == 1) .and. &
    all(coords == 0), 'periods')
  call MPI_Initialized(flag)
  call check(flag, 'initialized')
  call MPI_Comm_free(grid)
  if (errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (errors /= 0) stop 1
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (ok) return
    print '(2a)', 'wrong: ', what
    errors = errors + 1
  end subroutine
end program
