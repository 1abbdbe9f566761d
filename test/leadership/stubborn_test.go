package leadership

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// What the stubborn part writes: claims under its term, and, by one more writer, the same without any fence. The latter shows
// what becomes of a leader that is not fenced.
const (
	claims   = 4
	claim    = "claim"
	unfenced = "unfenced"
)

// stubborn is a part of a server that leads and never hears that it was overtaken: from the first time that its server leads it
// writes on and on, and each of its claims says under which term it was written.
func stubborn(dataDir string, args []string) {
	name, port := flagsOf(args)
	config, err := loopback.Masters(dataDir, port)
	for err != nil { // the server has not made its authority yet
		time.Sleep(50 * time.Millisecond)
		config, err = loopback.Masters(dataDir, port)
	}
	plain, err := newClient(config)
	for err != nil { // it does not listen yet
		time.Sleep(50 * time.Millisecond)
		plain, err = newClient(config)
	}
	end := func() {} // the writers of an earlier term of this server
	for known := ""; ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		token, server, err := leader(ctx, plain)
		cancel()
		if err != nil || server != name || token == known {
			continue
		}
		known = token
		end()
		var life context.Context
		life, end = context.WithCancel(context.Background())
		fenced, err := newClient(bare.Fenced(config, token))
		if err != nil {
			slog.Error("the stubborn part", "error", err)
			continue
		}
		for n := range claims {
			go write(life, fenced, fmt.Sprintf("%s-%d", claim, n), token)
		}
		go write(life, plain, unfenced, token)
	}
}

func flagsOf(args []string) (name string, port int) {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&name, "name", "", "")
	f.IntVar(&port, "api-port", 0, "")
	for i := range args { // the other flags are not its own
		if args[i] == "--name" || args[i] == "--api-port" {
			_ = f.Parse(args[i : i+2])
		}
	}
	return name, port
}

// write writes one ConfigMap again and again until this server leads once more.
func write(life context.Context, c client.Client, object, token string) {
	for n := 0; life.Err() == nil; n++ {
		ctx, cancel := context.WithTimeout(life, 30*time.Second)
		o := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: object},
			Data:       map[string]string{"token": token, "n": fmt.Sprint(n)},
		}
		err := c.Update(ctx, o)
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, o)
		}
		cancel()
		pause := 10 * time.Millisecond
		if err != nil {
			pause = 50 * time.Millisecond
		}
		time.Sleep(pause)
	}
}
