// Here `user.h` has what is emulated of it.
