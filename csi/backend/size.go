package backend

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// DefaultSize is that of a volume for which no size is asked.
const DefaultSize = 1 << 30

// SizeFor is the size of a new volume: as asked for, rounded up to whole units, and at least the
// smallest that a back end can make.
func SizeFor(r Request, unit, smallest int64) (int64, error) {
	bytes := r.Bytes
	if bytes == 0 {
		bytes = DefaultSize
		if r.Limit > 0 {
			bytes = min(bytes, r.Limit/unit*unit)
		}
	}
	bytes = max(RoundUp(bytes, unit), smallest)
	if r.Limit > 0 && bytes > r.Limit {
		return 0, status.Errorf(codes.OutOfRange,
			"the smallest volume that fits has %s, which is above the limit of %s", Bytes(bytes), Bytes(r.Limit))
	}
	return bytes, nil
}

// RoundUp rounds a size up to whole units.
func RoundUp(bytes, unit int64) int64 { return (bytes + unit - 1) / unit * unit }
