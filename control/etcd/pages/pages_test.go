package pages

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// work changes a database at random: buckets in buckets, values that need pages of their own, and keys that go again.
func work(t *testing.T, db *bbolt.DB, random *rand.Rand) {
	t.Helper()
	err := db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(fmt.Appendf(nil, "bucket %d", random.IntN(4)))
		if err != nil {
			return err
		}
		if random.IntN(3) == 0 {
			if b, err = b.CreateBucketIfNotExists([]byte("~inner")); err != nil {
				return err
			}
		}
		for range random.IntN(60) {
			key := fmt.Appendf(nil, "key %d", random.IntN(3000))
			if random.IntN(3) == 0 {
				err = b.Delete(key)
			} else {
				err = b.Put(key, make([]byte, random.IntN(200)<<random.IntN(8)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheck: whatever bbolt writes is good, and each key is visited.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "db")
		random := rand.New(rand.NewPCG(1, 2))
		for range 40 {
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: !synced, NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				work(t, db, random)
			}
			want := 0
			err = db.View(func(tx *bbolt.Tx) error {
				return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
					want += b.Stats().KeyN
					if inner := b.Bucket([]byte("~inner")); inner != nil {
						want-- // it is a key of the outer one, and no value
					}
					return nil
				})
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			got := 0
			if err := Check(path, func(_, _, _ []byte) error { got++; return nil }); err != nil || got != want {
				t.Fatalf("%v; visited %d keys, want %d", err, got, want)
			}
		}
	}
}

// TestCheck_damaged: what is cut off, or has no good page at its head, is damaged; one good page at the head is enough.
func TestCheck_damaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		work(t, db, random)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	zero := func(from, to int) []byte {
		text := append([]byte{}, whole...)
		clear(text[from:to])
		return text
	}
	for name, test := range map[string]struct {
		text []byte
		bad  bool
	}{
		"whole":                   {whole, false},
		"empty":                   {nil, true},
		"cut":                     {whole[:len(whole)/2], true},
		"cut in the head":         {whole[:100], true},
		"no head":                 {zero(0, 2*page), true},
		"one page of the head":    {zero(0, page), false},
		"the other page":          {zero(page, 2*page), false},
		"no pages after the head": {zero(2*page, len(whole)), true},
	} {
		if err := os.WriteFile(path, test.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(path, nil); errors.Is(err, ErrDamaged) != test.bad || err != nil && !test.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck_never panics, whatever a file holds, and never ends by itself.
func TestCheck_never(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		work(t, db, random)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for range 600 {
		text := append([]byte{}, whole...)
		for range 1 + random.IntN(4) {
			at := random.IntN(len(text) - 8)
			if random.IntN(2) == 0 { // where the headers of pages are
				at = at/4096*4096 + random.IntN(64)
			}
			text[at] ^= byte(1 + random.IntN(255))
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if Check(path, func(_, _, _ []byte) error { return nil }) != nil {
			found++
		}
	}
	t.Logf("%d of 600 are damaged", found)
}
