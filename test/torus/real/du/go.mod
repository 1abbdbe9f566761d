module github.com/ricochet2200/go-disk-usage

go 1.26
