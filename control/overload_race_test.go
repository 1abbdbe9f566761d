//go:build race

package control_test

// overload is how many requests there are at any moment: more than the 400 that the library would
// let in. With the race detector the server takes several times as long for each, and answers 429 to
// those that wait for longer than 15 s.
const overload = 480
