module github.com/lpabon/godbc

go 1.26
