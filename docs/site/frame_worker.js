// A page from the disk may start no worker, and the theme searches in one: a hidden frame does its work instead.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.body.append(frame)
      this.inner = frame.contentWindow
      this.inner.postMessage = (data) => this.heard(data)
      this.inner.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)))
      this.load(url).then(() => this.waiting.splice(0).forEach((data) => this.send(data)), (error) => this.onerror?.(error))
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = Object.assign(this.inner.document.createElement("script"), { src: url, onload: done, onerror: failed })
        this.inner.document.body.append(script)
        script.addEventListener("load", () => (this.loaded = true))
      })
    }

    heard(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      this.onmessage?.(event)
    }

    send(data) {
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }))
    }

    postMessage(data) {
      this.loaded ? this.send(data) : this.waiting.push(data)
    }

    terminate() {
      this.inner.frameElement.remove()
    }
  }
}
