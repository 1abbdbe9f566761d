module github.com/holdfast-storage/holdfast/test/torus/real

go 1.26.0

require github.com/coreos/torus v0.1.2

// What it is built from: the newest releases that still have what its sources call.
require (
	github.com/DeanThompson/ginpprof v0.0.0-00010101000000-000000000000 // indirect
	github.com/RoaringBitmap/roaring v1.9.4 // indirect
	github.com/barakmich/mmap-go v0.0.0-00010101000000-000000000000 // indirect
	github.com/coreos/etcd v3.3.27+incompatible // indirect
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/coreos/go-systemd v0.0.0-20191104093116-d3cd4ed1dbcf // indirect
	github.com/coreos/pkg v0.0.0-20240122114842-bbd7aa9bf6fb // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/gin-contrib/sse v0.1.0 // indirect
	github.com/gin-gonic/gin v1.3.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/protobuf v1.3.5 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/lpabon/godbc v0.0.0-00010101000000-000000000000 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/pborman/uuid v1.2.1 // indirect
	github.com/prometheus/client_golang v0.9.4 // indirect
	github.com/ricochet2200/go-disk-usage v0.0.0-00010101000000-000000000000 // indirect
	github.com/serialx/hashring v0.0.0-20200727003509-22c0c7ab6b1b // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.1.0 // indirect
	github.com/ugorji/go/codec v1.3.2 // indirect
	go.uber.org/zap v1.28.0 // indirect
	google.golang.org/grpc v1.26.0 // indirect
	gopkg.in/go-playground/validator.v8 v8.18.2 // indirect
)

// Modules that no proxy has any more. The few functions that Torus calls are written anew here.
replace (
	github.com/DeanThompson/ginpprof => ./ginpprof
	github.com/barakmich/mmap-go => ./mmap
	github.com/lpabon/godbc => ./godbc
	github.com/ricochet2200/go-disk-usage => ./du
)
