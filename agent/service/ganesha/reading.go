package ganesha

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// complete is what NFS-Ganesha logs when it serves what it has read, and nothing of before.
const complete = ":Reread exports complete"

// nowhere is what the file of a reading that has ended leads to: the process logs into it until the next one.
const nowhere = os.DevNull

// reading is a configuration that the process was given. Each has a number, and a file of that name into which the process
// logs as soon as it has taken this configuration and no other one: two signals that meet cannot be confused.
type reading struct {
	number int
	// text is the configuration as it is wanted, without the number.
	text string
	// ended says that the process serves what it has read.
	ended bool
}

var numberInText = regexp.MustCompile(`(/` + ganesha.DirReadings + `/)(\d+)"`)

// numbered is a configuration with the number of a reading.
func numbered(text string, number int) string {
	return numberInText.ReplaceAllString(text, fmt.Sprintf(`${1}%d"`, number))
}

// untold ends a configuration that tells no readings until the process was told of it.
const untold = "# the process is not told of this yet\n"

// tellsReadings says whether a configuration has the process tell what it has read. That of an earlier Holdfast does not.
func tellsReadings(text string) bool { return numberInText.MatchString(text) }

// serves says whether the process serves what is wanted, as far as the configuration has it tell that.
func (r *reading) serves(wanted string, starting bool) bool {
	if r.text != wanted || !tellsReadings(wanted) {
		return r.text == wanted
	}
	return r.ended && (r.number > 0 || !starting) // a process listens when it serves what it read at its start
}

// readingFile is where the process logs from a reading on.
func readingFile(l *service.Local, number int) string {
	return filepath.Join(l.Run, ganesha.DirReadings, strconv.Itoa(number))
}

// wantedConf is the configuration that is wanted, and whether it is written: the files of a new generation may still be
// those of the one before. A server of an earlier Holdfast gives no stamp: then they are taken for written.
func wantedConf(l *service.Local) (text string, written bool, err error) {
	conf, err := os.ReadFile(filepath.Join(l.Data, ganesha.FileConf))
	if err != nil {
		return "", false, fmt.Errorf("while reading the configuration: %w", err)
	}
	stamp := l.Parameters[ganesha.ParamStamp]
	return string(conf), stamp == "" || ganesha.HasStamp(string(conf), stamp), nil
}

// lastReading is the last configuration that the process was given, and may not have read yet.
func lastReading(l *service.Local) (reading, error) {
	text, err := os.ReadFile(filepath.Join(l.Run, ganesha.FileLoaded))
	if errors.Is(err, os.ErrNotExist) {
		return reading{}, nil
	}
	if err != nil {
		return reading{}, fmt.Errorf("while reading the configuration that is loaded: %w", err)
	}
	r := reading{text: numbered(string(text), 0)}
	found := numberInText.FindStringSubmatch(string(text))
	if found == nil { // an earlier Holdfast started the process: it does not say what it has read
		return r, nil
	}
	if r.number, err = strconv.Atoi(found[2]); err != nil {
		return reading{}, fmt.Errorf("while reading the configuration that is loaded: %w", err)
	}
	log, err := said(l, r.number)
	r.ended = strings.Contains(log, complete) || log == nowhere
	return r, err
}

// said is what the process has logged since it took a configuration, or nowhere when it is known to serve it.
func said(l *service.Local, number int) (string, error) {
	file := readingFile(l, number)
	if target, err := os.Readlink(file); err == nil && target == nowhere {
		return nowhere, nil
	}
	log, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("while reading what the server says of its configuration: %w", err)
	}
	return string(log), nil
}

var exportInText = regexp.MustCompile(`^EXPORT \{ Export_Id = (\d+); .*Pseudo = "([^"]*)";`)

// exportsIn are the exports of a configuration: the pseudo path of each, and its number.
func exportsIn(text string) map[string]string {
	ids := map[string]string{}
	for line := range strings.Lines(text) {
		if m := exportInText.FindStringSubmatch(line); m != nil {
			ids[m[2]] = m[1]
		}
	}
	return ids
}

// steps are the configurations that the process has to read one after the other to get from one to another. NFS-Ganesha
// takes no new export at a pseudo path that another one has, which it lets go of only afterwards. From a reading that may
// not have ended, only what it has in common with the wanted one is certain to be taken.
func steps(from reading, wanted string) []string {
	was, first := exportsIn(from.text), strings.Builder{}
	for line := range strings.Lines(wanted) {
		m := exportInText.FindStringSubmatch(line)
		if m == nil || was[m[2]] == m[1] || was[m[2]] == "" && from.ended {
			first.WriteString(line)
		}
	}
	if first.String() == wanted {
		return []string{wanted}
	}
	return []string{first.String(), wanted}
}
