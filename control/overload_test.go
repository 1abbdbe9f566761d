//go:build !race

package control_test

// overload is how many requests there are at any moment: twice what the library would let in. It
// would refuse the rest.
const overload = 800
