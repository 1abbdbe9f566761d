package rbdmirror

import (
	"strconv"
	"strings"
)

// Interval writes an interval as the manager does, in the largest unit that it is a multiple of:
// 60m is 1h (rbd_support, Interval.to_string).
func Interval(interval string) string {
	units := []struct {
		unit    string
		minutes int
	}{{"d", 24 * 60}, {"h", 60}, {"m", 1}}
	n, err := strconv.Atoi(strings.TrimRight(interval, "mhd"))
	if err != nil {
		return interval
	}
	for _, u := range units {
		if strings.HasSuffix(interval, u.unit) {
			n *= u.minutes
			break
		}
	}
	for _, u := range units {
		if n%u.minutes == 0 {
			return strconv.Itoa(n/u.minutes) + u.unit
		}
	}
	return interval
}
