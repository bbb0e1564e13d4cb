import CCurl
import FerryCore
import Glibc

/// One easy handle at work: its options, callbacks and buffers; confined to the loop's thread.
final class LoopTransfer {
    let exchange: Exchange
    let easy: OpaquePointer
    var sink: (any BodySink)?
    /// Looks for stalls.
    var watch: StallWatch
    /// Why the loop ended it as stalled.
    var stall: StallWatch.Stall?
    private var parser = HeadParser()
    private(set) var hasHead = false
    /// Bytes of heads and trailers that have come.
    private(set) var headBytes: Int64 = 0
    /// The addresses that a connection was tried to.
    var tried: [String] = []
    /// The sockets that were made for that.
    var sockets: [Int32] = []
    private var bodyBytes: Int64 = 0
    private(set) var isPaused = false
    private var hasLargeHead = false
    /// How much of the request's body libcurl has taken; back at 0 when it has to send it again.
    private var position: Int64 = 0
    private var hasLeave = false
    private var ignoredExpect = false
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    private let errorBuffer: UnsafeMutablePointer<CChar>
    let receiving: RatePace
    let sending: RatePace
    /// What the kernel may hold of the body.
    var buffer = ReceiveBuffer()
    /// Whether the kernel decided about that at some time, so that the connection may have a large window.
    var wasWide = false

    /// The socket of its connection, once that is there.
    var descriptor: Int32?
    let table: SocketTable

    init(
        exchange: Exchange,
        easy: OpaquePointer,
        limiter: RateLimiter,
        thread: Int,
        table: SocketTable,
        now: Duration
    ) {
        self.table = table
        self.exchange = exchange
        self.easy = easy
        self.watch = StallWatch(limit: exchange.request.stallTimeout, now: now)
        func pace(isUpload: Bool) -> RatePace {
            RatePace(
                limiter,
                RateLimiter.Flow(thread: thread, exchange: exchange.id, isUpload: isUpload),
                RateScheduler.Traits(
                    isUpload: isUpload,
                    hosts: exchange.request.limitHosts,
                    job: exchange.request.job
                )
            )
        }
        self.receiving = pace(isUpload: false)
        self.sending = pace(isUpload: true)
        self.errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        self.errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        // The handle was reset or cleaned up before this object goes, so nothing points here any more.
        curl_slist_free_all(self.fieldList)
        self.errorBuffer.deallocate()
    }

    /// libcurl's words about what went wrong, with the line ends of multi-line messages removed.
    var errorText: String {
        String(cString: self.errorBuffer).split(whereSeparator: \.isNewline).joined(separator: "; ")
    }

    /// Sets every option of the request.
    ///
    /// - Parameters:
    ///   - userAgent: What it calls itself unless a field says otherwise.
    ///   - awake: The time since the machine slept last, nil if that does not matter any more.
    ///   - quiet: The time since an unlimited transfer ended, nil if that does not matter any more.
    /// - Returns: The first failure of libcurl to take an option.
    func configure(userAgent: String, awake: Duration? = nil, quiet: Duration? = nil) -> CURLcode {
        var request = self.exchange.request
        var reuse = awake.map { Self.reuse(awake: $0) } ?? []
        if request.body == nil, let share = self.receiving.share {
            self.narrow(&request, to: share)
            reuse += quiet.map { Self.reuse(at: share, quiet: $0) } ?? []
        } else {
            self.wasWide = request.body == nil
        }
        for field in request.fields {
            // "Name;" is libcurl's way to send a field with an empty value (CURLOPT_HTTPHEADER(3)).
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            guard let list = curl_slist_append(self.fieldList, line) else { return CURLE_OUT_OF_MEMORY }
            self.fieldList = list
        }
        if request.body != nil {
            // Without a value the field is left out, which libcurl would add by itself (CURLOPT_HTTPHEADER(3)).
            let expect = request.expectsContinue ? "Expect: 100-continue" : "Expect:"
            guard let list = curl_slist_append(self.fieldList, expect) else { return CURLE_OUT_OF_MEMORY }
            self.fieldList = list
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        var codes = (Self.numbers(request) + reuse).map { ferry_curl_set_long(self.easy, $0.0, $0.1) }
        codes += Self.texts(request, userAgent: userAgent).map {
            ferry_curl_set_string(self.easy, $0.0, $0.1)
        }
        codes += Self.lists.map { ferry_curl_set_list(self.easy, $0, self.fieldList) }
        codes += Self.buffers.map { ferry_curl_set_pointer(self.easy, $0, self.errorBuffer) }
        codes += Self.contexts.map { ferry_curl_set_pointer(self.easy, $0, context) }
        codes += Self.callbacks.map { ferry_curl_set_data_callback(self.easy, $0.0, $0.1) }
        codes += Self.offsets(request).map { ferry_curl_set_offset(self.easy, $0.0, $0.1) }
        codes += Self.seekCallbacks.map { ferry_curl_set_seek_callback(self.easy, $0.0, $0.1) }
        codes += Self.openSocketCallbacks.map { ferry_curl_set_opensocket_callback(self.easy, $0.0, $0.1) }
        codes += Self.connectionCallbacks.map { ferry_curl_set_prereq_callback(self.easy, $0.0, $0.1) }
        if self.buffer.size != nil {
            codes += Self.socketCallbacks.map { ferry_curl_set_socket_callback(self.easy, $0.0, $0.1) }
        }
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    // MARK: Options by the type of their argument; a test asks libcurl whether they stand in the right list.

    /// Options that take a `long`.
    static func numbers(_ request: HTTPRequest) -> [(CURLoption, Int)] {
        let minimum = request.tlsMinimum == .v13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        return [
            (CURLOPT_NOSIGNAL, 1),
            (CURLOPT_QUICK_EXIT, 1),
            (CURLOPT_HTTP_VERSION, Int(request.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)),
            (CURLOPT_SSLVERSION, Int(minimum)),
            (CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
            (CURLOPT_TCP_KEEPALIVE, 1),
            (CURLOPT_BUFFERSIZE, request.bufferBytes),
            (CURLOPT_CONNECTTIMEOUT_MS, max(1, request.connectTimeout.wholeMilliseconds)),
            (CURLOPT_NOBODY, request.method == "HEAD" ? 1 : 0),
            (CURLOPT_FRESH_CONNECT, request.freshConnection ? 1 : 0),
        ]
            + (request.body == nil
                ? []
                : [
                    (CURLOPT_UPLOAD, 1),
                    // Measured: above 128 KiB, where malloc(3) maps the buffer, a byte costs twice as much.
                    (CURLOPT_UPLOAD_BUFFERSIZE, 96 * 1_024),
                    (CURLOPT_EXPECT_100_TIMEOUT_MS, 1_000),
                ])
    }

    /// The options, of a `long` too, that keep connections from being used again that are older than the machine's
    /// last sleep: the other side may have forgotten them (CURLOPT_MAXAGE_CONN(3) counts seconds).
    static func reuse(awake: Duration) -> [(CURLoption, Int)] {
        let seconds = awake.wholeMilliseconds / 1_000
        return seconds < 2 ? [(CURLOPT_FRESH_CONNECT, 1)] : [(CURLOPT_MAXAGE_CONN, seconds - 1)]
    }

    /// Options that take a `curl_off_t`: the exact length, so that a body is never sent in chunks.
    static func offsets(_ request: HTTPRequest) -> [(CURLoption, curl_off_t)] {
        request.body.map { [(CURLOPT_INFILESIZE_LARGE, curl_off_t($0.length))] } ?? []
    }

    /// Options that take a `char *`, which libcurl copies; without a CA file its default stays.
    static func texts(_ request: HTTPRequest, userAgent: String) -> [(CURLoption, String?)] {
        [
            (CURLOPT_URL, request.url),
            (CURLOPT_PROTOCOLS_STR, "http,https"),
            (CURLOPT_USERAGENT, userAgent),
            (CURLOPT_CUSTOMREQUEST, request.method == "GET" ? nil : request.method),
            // An empty proxy switches the environment's off (CURLOPT_PROXY(3)).
            (CURLOPT_PROXY, request.proxy ?? ""),
            (CURLOPT_NOPROXY, request.noProxy ?? ""),
        ] + (request.caFile.map { [(CURLOPT_CAINFO, $0)] } ?? [])
            // An empty text asks for every coding that this libcurl can undo (CURLOPT_ACCEPT_ENCODING(3)).
            + (request.decodes ? [(CURLOPT_ACCEPT_ENCODING, "")] : [])
    }

    /// Options that take a list of strings.
    static let lists = [CURLOPT_HTTPHEADER]
    /// Options that take a buffer.
    static let buffers = [CURLOPT_ERRORBUFFER]
    /// Options that take what the callbacks get.
    static let contexts = [
        CURLOPT_HEADERDATA, CURLOPT_WRITEDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_OPENSOCKETDATA,
        CURLOPT_SOCKOPTDATA, CURLOPT_PREREQDATA,
    ]
    /// Options that take a callback for data.
    static let callbacks = [
        (CURLOPT_HEADERFUNCTION, onHeader), (CURLOPT_WRITEFUNCTION, onBody), (CURLOPT_READFUNCTION, onRead),
    ]
    /// Options that take the callback for going back in the request's body (protocols: C17).
    static let seekCallbacks = [(CURLOPT_SEEKFUNCTION, onSeek)]
    /// Options that take a callback for a new socket.
    static let socketCallbacks = [(CURLOPT_SOCKOPTFUNCTION, onSocket)]

    /// Options that take the callback that makes sockets.
    static let openSocketCallbacks = [(CURLOPT_OPENSOCKETFUNCTION, onOpenSocket)]

    /// Options that take the callback that tells of a connection (CURLOPT_PREREQFUNCTION(3)).
    static let connectionCallbacks = [(CURLOPT_PREREQFUNCTION, onConnection)]

    /// Lets a paused body flow again; libcurl may call the write callback before this returns.
    ///
    /// - Returns: What that call of the callback ended with; libcurl itself would go on (curl_easy_pause(3)).
    func unpause() -> CURLcode {
        guard self.isPaused else { return CURLE_OK }
        self.isPaused = false
        return curl_easy_pause(self.easy, CURLPAUSE_CONT)
    }

    /// What is known at the end.
    func end(code: Int32, detail: String) -> ExchangeEnd {
        var end = ExchangeEnd(code: code, detail: detail)
        if self.hasLargeHead {
            end.code = Int32(CURLE_WEIRD_SERVER_REPLY.rawValue)
            end.detail = "the server's header fields are larger than \(HeadParser.limit / 1_024) KiB"
        }
        if let stall { end.detail = "\(stall.text) while \(self.phase.text)" }
        end.phase = self.phase
        end.stall = self.stall
        end.wasAsleep = self.watch.isDoubtfulSinceSleep
        end.tried = self.tried
        end.bodyBytes = self.bodyBytes
        end.trailers = self.parser.trailers
        var text: UnsafePointer<CChar>?
        var number = 0
        if ferry_curl_get_string(self.easy, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text,
            ferry_curl_get_long(self.easy, CURLINFO_PRIMARY_PORT, &number) == CURLE_OK, number > 0
        {
            let address = String(cString: text)
            end.address = address.contains(":") ? "[\(address)]:\(number)" : "\(address):\(number)"
        }
        end.takenBytes = self.position
        end.ignoredExpect = self.ignoredExpect
        var count: curl_off_t = 0
        if ferry_curl_get_offset(self.easy, CURLINFO_SIZE_UPLOAD_T, &count) == CURLE_OK {
            end.sentBytes = Int64(count)
        }
        var microseconds: curl_off_t = 0
        if ferry_curl_get_offset(self.easy, CURLINFO_STARTTRANSFER_TIME_T, &microseconds) == CURLE_OK,
            microseconds > 0
        {
            end.firstByte = .microseconds(microseconds)
        }
        if ferry_curl_get_offset(self.easy, CURLINFO_TOTAL_TIME_T, &microseconds) == CURLE_OK {
            end.total = .microseconds(microseconds)
        }
        return end
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let sink else {
            self.isPaused = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        guard self.receiving.take(bytes.count) else {
            self.isPaused = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        self.followShare()
        switch sink.receive(bytes) {
        case .taken:
            self.bodyBytes += Int64(bytes.count)
            return bytes.count
        case .pause:
            self.receiving.giveBack(bytes.count)
            self.isPaused = true
            return Int(CURL_WRITEFUNC_PAUSE)
        case .stop:
            return Int(CURL_WRITEFUNC_ERROR)
        }
    }

    private static let onHeader: ferry_curl_data_callback = { bytes, size, count, context in
        guard let context, let bytes else { return 0 }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        transfer.headBytes += Int64(line.count)
        switch transfer.parser.take(line) {
        case .none: break
        case .interim(let head):
            if head.status == 100 {
                transfer.hasLeave = true
            } else {
                transfer.exchange.request.onInterim?(head)
            }
        case .head(let head):
            transfer.hasHead = true
            transfer.exchange.headSlot.fill(.success(head))
            // libcurl would send the request again by itself, and its second head would be taken for trailers.
            if head.status == 417, transfer.exchange.request.expectsContinue { return 0 }
        case .tooLarge:
            transfer.hasLargeHead = true
            return 0  // anything but the count ends the transfer (CURLOPT_HEADERFUNCTION(3))
        }
        return size * count
    }

    private func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let request = self.exchange.request
        guard let source = request.body, self.position < source.length else { return 0 }
        if request.expectsContinue, !self.hasLeave { self.ignoredExpect = true }
        let room = self.sending.take(upTo: Int(min(Int64(buffer.count), source.length - self.position)))
        guard room > 0 else {
            self.isPaused = true
            return Int(CURL_READFUNC_PAUSE)
        }
        switch source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]), at: self.position)
        {
        case .bytes(let count) where (1...room).contains(count):
            self.sending.giveBack(room - count)
            self.position += Int64(count)
            return count
        case .pause:
            self.sending.giveBack(room)
            self.isPaused = true
            return Int(CURL_READFUNC_PAUSE)
        case .bytes, .failed:
            // A shorter body would be waited for, or be taken for the whole (CURLOPT_READFUNCTION(3)).
            return Int(CURL_READFUNC_ABORT)
        }
    }

    private static let onRead: ferry_curl_data_callback = { bytes, size, count, context in
        guard let context, let bytes else { return Int(CURL_READFUNC_ABORT) }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.give(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
    }

    /// Goes back: libcurl sends a body again where a reused connection was dead (CURLOPT_SEEKFUNCTION(3)).
    private static let onSeek: ferry_curl_seek_callback = { context, offset, origin in
        guard let context, origin == SEEK_SET, offset >= 0 else { return CURL_SEEKFUNC_FAIL }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        guard let source = transfer.exchange.request.body, offset <= source.length else {
            return CURL_SEEKFUNC_FAIL
        }
        transfer.position = Int64(offset)
        return CURL_SEEKFUNC_OK
    }

    private static let onBody: ferry_curl_data_callback = { bytes, size, count, context in
        guard let context else { return Int(CURL_WRITEFUNC_ERROR) }  // 0 would be legal for an empty body
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
}

extension Duration {
    /// The time of a clock that only goes forward.
    static var sinceBoot: Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)  // it cannot fail for this clock
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    /// Milliseconds, rounded down.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = self.components
        return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
    }
}
