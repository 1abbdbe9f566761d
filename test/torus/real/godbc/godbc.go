// Package godbc stands for github.com/lpabon/godbc, written anew: what Torus's last master takes
// for granted.
package godbc

import "fmt"

// Require panics where what a function asks for is not so.
func Require(isSo bool, about ...any) { must(isSo, about) }

// Ensure panics where what a function promises is not so.
func Ensure(isSo bool, about ...any) { must(isSo, about) }

// Check panics where what a function takes for granted is not so.
func Check(isSo bool, about ...any) { must(isSo, about) }

func must(isSo bool, about []any) {
	if !isSo {
		panic(fmt.Sprint(about...))
	}
}
