package uevent

import "testing"

func TestAboutBlock(t *testing.T) {
	for message, want := range map[string]bool{
		"add@/devices/virtual/block/loop0\x00ACTION=add\x00SUBSYSTEM=block\x00": true,
		"add@/devices/virtual/net/lo\x00ACTION=add\x00SUBSYSTEM=net\x00":        false,
		"": false,
	} {
		if got := AboutBlock([]byte(message)); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}
