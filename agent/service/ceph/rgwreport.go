package ceph

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

const (
	// answerTimeout bounds one request to the gateway.
	answerTimeout = 3 * time.Second
	// startTime is how long a gateway that does not answer is asked again before that is told: it
	// takes two seconds to start.
	startTime  = 6 * time.Second
	askAgain   = 100 * time.Millisecond
	answerKept = 64 << 10
)

// Report says whether the gateway answers requests, and which commands were carried out here.
func (RGW) Report(ctx context.Context, l *service.Local) (string, error) {
	r := rgw.Report{PID: l.PID, Done: map[string]string{}}
	done, err := readWords(l)
	if err != nil {
		return "", err
	}
	for _, w := range done {
		r.Done[w.Object] = w.Word
	}
	var answer error
	if r.Serves, answer, err = askGateway(ctx, l); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("while asking the gateway whether it serves: %w", context.Cause(ctx))
	}
	if r.Up = answer == nil; answer != nil {
		r.Problem = "it does not answer: " + answer.Error()
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// askGateway asks the gateway where it serves until it answers, or startTime is over. The answer is
// nil, or why there is none.
func askGateway(ctx context.Context, l *service.Local) (serves string, answer, err error) {
	until := time.Now().Add(startTime)
	for {
		before, err := readServes(l)
		if err != nil {
			return "", nil, err
		}
		url, _, _ := strings.Cut(cmp.Or(before, l.Parameters[rgw.ParamURL]), " ")
		answer = answers(ctx, url)
		if serves, err = readServes(l); err != nil {
			return "", nil, err
		}
		if answer == nil && serves == before || time.Now().After(until) || pause(ctx) != nil {
			return serves, answer, nil
		}
	}
}

// readServes reads where the process serves. A process that has just started may not have written
// it yet: then the note is its predecessor's. It has written it before it answers. A process that
// an older version started leaves no note.
func readServes(l *service.Local) (string, error) {
	serves, err := os.ReadFile(filepath.Join(l.Run, rgw.FileServes))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("while reading where the gateway serves: %w", err)
	}
	return string(serves), nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(askAgain):
		return nil
	}
}

// answers asks the gateway for the buckets of nobody, which it has an answer for as soon as it has
// read its layout from Ceph.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is told or believed
	}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// A gateway whose answer is not read to its end complains in its log.
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, answerKept)); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s says %s", url, response.Status)
	}
	return nil
}

// word says that a command was carried out here.
type word struct {
	Object string `json:"object"`
	Word   string `json:"word"`
}

const (
	fileWords = "done.json"
	// keptWords is how many are kept, so that reports stay short: the driver has noted older ones
	// itself.
	keptWords = 128
)

func readWords(l *service.Local) (done []word, err error) {
	text, err := os.ReadFile(filepath.Join(l.Data, fileWords))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading which commands were carried out: %w", err)
	}
	return done, nil
}

// keepWord notes that a command was carried out. The commands of a daemon come one at a time.
func keepWord(l *service.Local, object, text string) error {
	done, err := readWords(l)
	if err != nil {
		return err
	}
	done = append(slices.DeleteFunc(done, func(w word) bool { return w.Object == object }), word{object, text})
	data, err := json.Marshal(done[max(0, len(done)-keptWords):])
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(l.Data, fileWords), data, 0o600)
}
