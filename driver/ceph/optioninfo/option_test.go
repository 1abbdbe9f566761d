package optioninfo

import "testing"

func TestInfo_Wrong(t *testing.T) {
	for _, tt := range []struct {
		info  Info
		value string
		ok    bool
	}{
		{Info{Type: "size"}, "4G", true},
		{Info{Type: "size"}, "4Gi", true},
		{Info{Type: "size"}, "512KB", true},
		{Info{Type: "size"}, "4X", false},
		{Info{Type: "size"}, "", false},
		{Info{Type: "size"}, "KMG4", false},
		{Info{Type: "int", Min: "0", Max: "23"}, "0", true},
		{Info{Type: "int", Min: "0", Max: "23"}, "-1", false},
		{Info{Type: "float"}, "0.5", true},
		{Info{Type: "float"}, "7d", false},
		{Info{Type: "float"}, "-1", true},
		{Info{Type: "bool"}, "True", true},
		{Info{Type: "bool"}, "1", true},
		{Info{Type: "bool"}, "on", false},
		{Info{Type: "str", Enum: []string{"wpq", "mclock"}}, "wpq", true},
		{Info{Type: "str", Enum: []string{"wpq"}}, "x", false},
		{Info{Type: "str"}, "anything", true},
		{Info{Type: "secs"}, "5m", true},
	} {
		if why := tt.info.Wrong(tt.value); (why == "") != tt.ok {
			t.Errorf("%+v %q: %q", tt.info, tt.value, why)
		}
	}
}
