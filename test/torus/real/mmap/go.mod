module github.com/barakmich/mmap-go

go 1.26
