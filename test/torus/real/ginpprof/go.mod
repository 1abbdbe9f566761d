module github.com/DeanThompson/ginpprof

go 1.26

require github.com/gin-gonic/gin v1.3.0
