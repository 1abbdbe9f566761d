// Command s3client is a client of S3 for tests, made with a stock library. It does what test/e2e/client.sh does: 's3client DIR ENDPOINTS BUCKET write'
// writes one object after the other until DIR/stop is there; what was acknowledged is listed in DIR/written with its checksum, an older object is
// read back after each write and listed in DIR/wrong if it differs, attempts that failed and were repeated are listed in DIR/failed.
// 's3client DIR ENDPOINTS BUCKET verify' reads all of them back and prints how many were right. ENDPOINTS are URLs, joined by commas, that are tried
// one after the other. The keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; DIR/ca.pem is trusted.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: s3client DIR ENDPOINTS BUCKET write|verify")
		os.Exit(2)
	}
	c := &client{dir: os.Args[1], endpoints: strings.Split(os.Args[2], ","), bucket: os.Args[3]}
	err := map[string]func() error{"write": c.write, "verify": c.verify}[os.Args[4]]()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3client:", err)
		os.Exit(1)
	}
}

type client struct {
	dir, bucket string
	endpoints   []string
	made        []*minio.Client
}

const (
	attemptTimeout = 10 * time.Second
	objectSize     = 64 << 10
	pauseBetween   = 200 * time.Millisecond
)

// connect makes a client of each endpoint; nothing is sent yet.
func (c *client) connect() error {
	roots := x509.NewCertPool()
	if pem, err := os.ReadFile(filepath.Join(c.dir, "ca.pem")); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	for _, endpoint := range c.endpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			return err
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ResponseHeaderTimeout: attemptTimeout}
		m, err := minio.New(u.Host, &minio.Options{
			Creds: credentials.NewEnvAWS(), Secure: u.Scheme == "https", Region: "us-east-1", Transport: transport, BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
		})
		if err != nil {
			return err
		}
		c.made = append(c.made, m)
	}
	return nil
}

// once tries something at each endpoint, until one has done it.
func (c *client) once(do func(context.Context, *minio.Client) error) error {
	var errs []error
	for i, m := range c.made {
		ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
		err := do(ctx, m)
		cancel()
		if err == nil {
			c.made[0], c.made[i] = c.made[i], c.made[0] // the next one begins here
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// persist repeats something until it is done. What fails at all endpoints counts as failed.
func (c *client) persist(what string, do func(context.Context, *minio.Client) error) bool {
	for {
		err := c.once(do)
		if err == nil {
			return true
		}
		c.note("failed", what)
		c.made = nil // what is trusted may have changed
		if err := c.connect(); err != nil {
			return false
		}
		c.note("log", err.Error())
		if c.stopped() {
			return false
		}
		time.Sleep(pauseBetween)
	}
}

func (c *client) stopped() bool {
	_, err := os.Stat(filepath.Join(c.dir, "stop"))
	return err == nil
}

func (c *client) note(list, line string) {
	f, err := os.OpenFile(filepath.Join(c.dir, list), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3client:", err)
		os.Exit(1)
	}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func (c *client) get(name string, into *[]byte) func(context.Context, *minio.Client) error {
	return func(ctx context.Context, m *minio.Client) error {
		o, err := m.GetObject(ctx, c.bucket, name, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer o.Close()
		*into, err = io.ReadAll(o)
		return err
	}
}

func (c *client) write() error {
	if err := c.connect(); err != nil {
		return err
	}
	made := c.persist("bucket", func(ctx context.Context, m *minio.Client) error {
		if err := m.MakeBucket(ctx, c.bucket, minio.MakeBucketOptions{}); err != nil && minio.ToErrorResponse(err).Code != "BucketAlreadyOwnedByYou" {
			return err
		}
		return nil
	})
	var sums []string
	for made && !c.stopped() {
		data := make([]byte, objectSize)
		if _, err := rand.Read(data); err != nil {
			return err
		}
		name := fmt.Sprintf("o%d", len(sums)+1)
		if !c.persist("put "+name, func(ctx context.Context, m *minio.Client) error {
			_, err := m.PutObject(ctx, c.bucket, name, bytes.NewReader(data), objectSize, minio.PutObjectOptions{})
			return err
		}) {
			break
		}
		sums = append(sums, sum(data))
		c.note("written", name+" "+sum(data))
		i := mathrand.IntN(len(sums))
		old, read := fmt.Sprintf("o%d", i+1), []byte(nil)
		if !c.persist("get "+old, c.get(old, &read)) {
			break
		}
		if sum(read) != sums[i] {
			c.note("wrong", old)
		}
		time.Sleep(pauseBetween)
	}
	return nil
}

func (c *client) verify() error {
	if err := c.connect(); err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(c.dir, "written"))
	if err != nil {
		return err
	}
	right := 0
	for line := range strings.Lines(string(list)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		var read []byte
		if err := c.once(c.get(name, &read)); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if sum(read) != want {
			return fmt.Errorf("%s differs", name)
		}
		right++
	}
	fmt.Println(right)
	return nil
}
