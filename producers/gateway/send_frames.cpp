// Sends the steps of a robot to the springback gateway. Plain POSIX sockets, no library:
//
//   g++ -std=c++17 -o send_frames send_frames.cpp
//   ./send_frames 127.0.0.1 8090 robot-7            (SPRINGBACK_TOKEN in the environment, where the gateway wants one)
//
// A real robot calls `post` from a thread of its own, with a bounded queue before it, so that it never waits.
// After a 429 or 503 the same frames are sent again: their steps keep their numbers, so none counts twice.

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

struct Answer {
    int status = 0;
    int retry_after_s = 1;
    std::string body;
};

// One connection, one request. Throws where the gateway cannot be reached or does not speak HTTP.
Answer post(const std::string& host, const std::string& port, const std::string& json_lines) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) throw std::runtime_error("unknown host " + host);
    const int connection = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    const timeval longest{15, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    const bool connected = connection >= 0 && connect(connection, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    if (!connected) {
        if (connection >= 0) close(connection);
        throw std::runtime_error("no gateway at " + host + ":" + port);
    }
    std::ostringstream request;
    request << "POST /v1/frames HTTP/1.1\r\nHost: " << host << "\r\nContent-Type: application/x-ndjson\r\n"
            << "Content-Length: " << json_lines.size() << "\r\nConnection: close\r\n";
    if (const char* token = std::getenv("SPRINGBACK_TOKEN")) request << "Authorization: Bearer " << token << "\r\n";
    request << "\r\n" << json_lines;
    const std::string out = request.str();
    for (size_t sent = 0; sent < out.size();) {
        const ssize_t n = send(connection, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;  // it may have answered already: too large, say
        sent += static_cast<size_t>(n);
    }
    std::string in;
    char piece[4096];
    for (ssize_t n; (n = recv(connection, piece, sizeof piece, 0)) > 0;) in.append(piece, static_cast<size_t>(n));
    close(connection);

    Answer answer;
    if (std::sscanf(in.c_str(), "HTTP/1.%*d %d", &answer.status) != 1) throw std::runtime_error("no HTTP answer");
    const size_t end = in.find("\r\n\r\n");
    const size_t wait = in.find("Retry-After: ");
    if (wait < end) answer.retry_after_s = std::atoi(in.c_str() + wait + 13);
    if (end != std::string::npos) answer.body = in.substr(end + 4);
    return answer;
}

// A frame of one step; a real one holds some tens of them, and `ends` at the episode's end.
std::string frame(const std::string& robot, const std::string& session, int step, double progress, bool last) {
    std::ostringstream json;
    json << R"({"schema_version":1,"producer":")" << robot << R"(","session":")" << session
         << R"(","episodes":[{"agent":")" << robot << R"(","episode":"1","family":"delivery"}],)"
         << R"("steps":{"episode":[0],"step":[)" << step << R"(],"progress":[)" << progress
         << R"(],"mode":["navigate"]})";
    if (last) json << R"(,"ends":[{"episode":0,"outcome":"success"}])";
    json << "}\n";
    return json.str();
}

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: %s HOST PORT ROBOT\n", arguments[0]);
        return 2;
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    const std::string session = "start-" + std::to_string(now);
    std::string lines;
    for (int step = 0; step < 10; ++step) lines += frame(arguments[3], session, step, (step + 1) / 10.0, step == 9);
    try {
        for (int attempt = 0; attempt < 5; ++attempt) {
            const Answer answer = post(arguments[1], arguments[2], lines);
            std::printf("%d %s\n", answer.status, answer.body.c_str());
            if (answer.status != 429 && answer.status != 503) return answer.status == 200 ? 0 : 1;
            std::this_thread::sleep_for(std::chrono::seconds(answer.retry_after_s));
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 1;
}
