package etcd

import (
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMember_oldTLS: both ports of a member refuse TLS 1.2, with a good certificate as well, and
// take TLS 1.3.
func TestMember_oldTLS(t *testing.T) {
	t.Parallel()
	c := loneConfig(t)
	m, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	for name, port := range map[string]int{"peers": c.PeerPort, "clients": c.ClientPort} {
		for _, test := range []struct {
			version uint16
			want    string
		}{{tls.VersionTLS13, ""}, {tls.VersionTLS12, "protocol version"}} {
			err := handshake(t, &c, port, test.version)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s with %s: got %v, want %q", name, tls.VersionName(test.version), err, test.want)
			}
		}
	}
}

// handshake goes through a handshake as a member would, with at most a version of TLS.
func handshake(t *testing.T, c *Config, port int, version uint16) error {
	t.Helper()
	config, err := c.tls().ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.MinVersion, config.MaxVersion, config.NextProtos = tls.VersionTLS12, version, []string{"h2"}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), config)
	if err != nil {
		return err
	}
	return conn.Close()
}
