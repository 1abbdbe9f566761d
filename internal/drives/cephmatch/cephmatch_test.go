package cephmatch

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestHumanSize: sizes are written as ceph-volume does.
func TestHumanSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0.00 B", 1023: "1023.00 B", 1024: "1.00 KB", 4_000_787_030_016: "3.64 TB", 1<<40 - 1: "1024.00 GB",
		1 << 40: "1.00 TB", 1 << 50: "1.00 PB", 1 << 60: "1024.00 PB",
	} {
		if got := HumanSize(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

// TestAgainst has what surprises people: text is compared and counted by 1000, and case counts.
func TestAgainst(t *testing.T) {
	yes := true
	big := api.Device{Model: "PM1733", Vendor: "Samsung"}
	big.Size = *resource.NewQuantity(4_000_787_030_016, resource.DecimalSI)
	tera := api.Device{Size: *resource.NewQuantity(1<<40-1, resource.DecimalSI)}
	for _, tt := range []struct {
		filter  api.DriveFilter
		disk    api.Device
		matches bool
	}{
		{api.DriveFilter{Size: "4TB:"}, big, false},
		{api.DriveFilter{Size: "3TB:"}, big, true},
		{api.DriveFilter{Size: "3.64TB"}, big, true},
		{api.DriveFilter{Size: "3.64T"}, big, true},
		{api.DriveFilter{Size: "4TB"}, big, false},
		{api.DriveFilter{Size: "3TB:4TB"}, big, true},
		{api.DriveFilter{Size: ":3TB"}, big, false},
		{api.DriveFilter{Size: "4tb"}, big, false},
		{api.DriveFilter{Size: "1024GB"}, tera, true}, // larger than a disk of 1.00 TB, for Ceph
		{api.DriveFilter{Size: "1TB"}, tera, false},
		{api.DriveFilter{Size: ":1TB"}, tera, false},
		{api.DriveFilter{Model: "1733"}, big, true},
		{api.DriveFilter{Model: "pm"}, big, false},
		{api.DriveFilter{Vendor: "sung"}, big, true},
		{api.DriveFilter{Rotational: &yes}, big, false},
		{api.DriveFilter{All: true}, big, true},
	} {
		if why := Against(&tt.filter, &tt.disk); (len(why) == 0) != tt.matches {
			t.Errorf("%+v: %v, want a match: %v", tt.filter, why, tt.matches)
		}
	}
}
