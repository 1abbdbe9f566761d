package fallback

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
)

// TestFallback: where the server of a machine is down another one is asked, which is told once;
// where it runs, and where somebody names a server, no other is.
func TestFallback(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	down, up := listen(), listen()
	down.Close()
	gone, other := down.Addr().String(), up.Addr().String()
	for _, test := range []struct {
		name, own, asked string
		others           []string
		reaches, says    string
	}{
		{"it runs", other, other, []string{gone}, other, ""},
		{
			"it is down", gone, gone,
			[]string{gone, other},
			other,
			"cannot reach the server of this machine (" + gone + "): using another server (" + other,
		},
		{"all are down", gone, gone, []string{gone}, "", ""},
		{"another one that is named is down", other, gone, []string{other}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			f := Dialer{Own: test.own, Others: func() []string { return test.others }, Out: &out, Once: new(sync.Once)}
			for range 2 {
				c, err := f.Dial(t.Context(), "tcp", test.asked)
				if (err == nil) != (test.reaches != "") {
					t.Fatalf("got %v", err)
				}
				if err == nil {
					if got := c.RemoteAddr().String(); got != test.reaches {
						t.Errorf("it reached %s, want %s", got, test.reaches)
					}
					c.Close()
				}
			}
			if got := out.String(); !strings.HasPrefix(got, test.says) || strings.Count(got, "\n") != min(len(test.says), 1) {
				t.Errorf("told %q", got)
			}
		})
	}
}
