package cephmatch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// units are those of a filter, by their names in the texts of ceph-volume, in the bytes that Ceph takes
// them for: its texts count by 1024, and its filters by 1000.
var units = map[string]float64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

// HumanSize is a number of bytes as ceph-volume writes it (ceph_volume/util/disk.py,
// human_readable_size), such as "3.64 TB": filters compare this text, and not the bytes.
func HumanSize(bytes int64) string {
	size, unit := float64(bytes), "B"
	for _, next := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	return fmt.Sprintf("%.2f %s", size, unit)
}

// Size is the size of a filter: a range, or one size that has to be met exactly.
type Size struct {
	low, high, exact float64
	hasLow, hasHigh  bool
}

var (
	sizeRange = regexp.MustCompile(`^(\d+[KMGT]B?)?:(\d+[KMGT]B?)?$`)
	sizeExact = regexp.MustCompile(`^\d+\.?\d*[KMGT]B?$`)
)

// ParseSize reads a size as Ceph writes it: "10GB:40GB", "10G:", ":40G" or "666GB". Ceph also takes a
// text that continues after a range, and finds out only at the first disk that it understands nothing of
// others: these are refused here.
func ParseSize(text string) (Size, error) {
	switch {
	case text != ":" && sizeRange.MatchString(text):
		from, to, _ := strings.Cut(text, ":")
		return Size{low: bytesOf(from), high: bytesOf(to), hasLow: from != "", hasHigh: to != ""}, nil
	case sizeExact.MatchString(text):
		return Size{exact: bytesOf(text)}, nil
	}
	return Size{}, fmt.Errorf("size %q is invalid with match Ceph: write it as 10GB:40GB, 10GB:, :40GB or "+
		"3.64TB, with the units K, M, G or T", text)
}

// bytesOf is what Ceph takes a number with a unit for; 0 for none.
func bytesOf(text string) float64 {
	number := strings.TrimRight(text, "KMGTB")
	unit := strings.TrimSuffix(strings.TrimSpace(text[len(number):]), "B") + "B"
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0
	}
	return units[unit] * value
}

// Holds says whether a disk of so many bytes has the size. Ceph understands no text in B or PB.
func (s Size) Holds(bytes int64) bool {
	number, unit, _ := strings.Cut(HumanSize(bytes), " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || units[unit] == 0 {
		return false
	}
	have := units[unit] * value
	if !s.hasLow && !s.hasHigh {
		return have == s.exact
	}
	return (!s.hasLow || have >= s.low) && (!s.hasHigh || have <= s.high)
}

// Plain is a size of Ceph in the words of Holdfast, which means bytes.
func Plain(size string) string {
	return strings.ReplaceAll(strings.ReplaceAll(size, "B", ""), "K", "k")
}
